"""Generated conversations from which the demo model learns to chat, to reason and to call tools."""
