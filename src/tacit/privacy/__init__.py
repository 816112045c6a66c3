"""The privacy calculus: calibration, composition, sensitivity and noise. It sees no rows."""
