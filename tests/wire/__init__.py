"""Tests of formats: tables of cases and properties, without a database."""
