"""Reports for people: the schedule, the profile, the tape, and how lanes failed."""
