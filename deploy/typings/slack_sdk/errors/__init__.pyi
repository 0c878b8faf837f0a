# What is used of slack-sdk 3.47, whose own annotations leave its answers untyped.
from slack_sdk.web.async_client import AsyncSlackResponse

class SlackApiError(Exception):
    response: AsyncSlackResponse
