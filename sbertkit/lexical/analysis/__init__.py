"""How words are made of a text: runs of scripts, and a rule for each of them."""
