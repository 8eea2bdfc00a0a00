"""What one job of the workflow computes, and the record that it leaves."""
