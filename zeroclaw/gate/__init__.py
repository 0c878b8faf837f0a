"""The gate: decides for every tool call whether it may run, and records that before it does.

Policy, approval requests, grants, receipts and the audit chain; `decide.py` has their order.
"""
