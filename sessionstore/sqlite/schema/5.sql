-- Strands whose sessions or drafts were deleted. Their segments are deleted afterwards, in pieces,
-- except those that a fork inherits.
CREATE TABLE dropped (strand INTEGER PRIMARY KEY) STRICT;
