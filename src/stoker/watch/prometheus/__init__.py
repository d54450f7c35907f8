"""Prometheus, Alertmanager and Grafana told what to look at: text made of the table of alerts. Pure, one file for each."""
