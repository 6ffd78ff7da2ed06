"""Writes what CloudFormation gets of a SAM template: SAM's translation, as JSON."""

import json
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.translator.transform import transform


class ManagedPolicies:
    def load(self):
        return {}


with open(sys.argv[1]) as f:
    template = yaml_parse(f.read())
template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"  # where sam deploy would have put it
json.dump(transform(template, {}, ManagedPolicies()), sys.stdout)
