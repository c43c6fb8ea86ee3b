"""What one lesson alone needs: its examples, baselines and budgets."""
