"""The stores: each folder is one implementation of the contract in `store.py`."""
