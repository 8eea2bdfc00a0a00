"""Copies of the project, so that the tests make and change nothing here."""

import pytest

from workflow.small_project import Project


@pytest.fixture(scope="session")
def project(tmp_path_factory) -> Project:
    """A copy with the small ledger, in which nothing was made yet."""
    project = Project(tmp_path_factory.mktemp("small") / "project")
    project.use_small_ledger()
    return project


@pytest.fixture(scope="session")
def whole_project(tmp_path_factory) -> Project:
    """A copy with the committed ledgers."""
    return Project(tmp_path_factory.mktemp("whole") / "project")
