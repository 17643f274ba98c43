"""What a run leaves for people: files by their content, a report that stands alone, what it cost and for what."""
