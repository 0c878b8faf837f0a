"""The stores, each an implementation of the contract in `store.py`; `sqlite` is the only engine yet."""
