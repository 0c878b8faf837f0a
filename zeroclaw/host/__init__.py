"""Everything that touches this machine: clocks, ids, sockets, files, processes, the sandbox."""
