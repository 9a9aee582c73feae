"""What is drawn from results for people and programs: changes, the gate, the pages, the outputs."""
