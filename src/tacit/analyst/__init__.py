"""Where draws live. Nothing here imports the holder's side: releases are all it ever sees."""
