"""The arms: one module or package for each place where rows can live, called as the arm that it holds."""
