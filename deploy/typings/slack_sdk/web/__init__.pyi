# What is used of slack-sdk 3.47, whose own annotations leave its answers untyped.
