"""What is said about outboxes."""
