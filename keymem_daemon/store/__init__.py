"""The system of record and its second, in-memory implementation, behind the Store port."""
