"""What runs say side by side: leaderboards that never mix what was measured differently, comparisons with what they can and cannot tell."""
