"""What holds for every file that is sent."""

from zeroclaw import ChannelRejected, OutgoingFile


def check_size(channel: str, file: OutgoingFile, most: int) -> None:
    """See that a file is no larger than a channel takes, in bytes.

    Raises:
        ChannelRejected: It is.
    """
    if len(file.content) > most:
        message = f"`{channel}`: {len(file.content):,} bytes are more than {most:,}"
        raise ChannelRejected(message)
