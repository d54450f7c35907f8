"""What the machine and the model are: readers that look and never judge."""
