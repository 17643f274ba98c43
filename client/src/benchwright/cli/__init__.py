"""The `benchwright` command, on top of the SDK."""
