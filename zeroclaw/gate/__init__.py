"""The gate: decides for every tool call whether it may run, and records the decision before the run.

Policy, approval requests, grants, receipts and the audit chain; `decide.py` has their order.
"""
