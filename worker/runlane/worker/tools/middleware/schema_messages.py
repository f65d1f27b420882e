"""What a model is told of a broken JSON Schema keyword; nothing of what it wrote is in it."""

from collections.abc import Mapping
from typing import Final

ANY_BREACH: Final = "value does not match the tool schema"
UNCHECKABLE: Final = "arguments are too deep or too large to be checked"

MESSAGES: Final[Mapping[str, str]] = {
    "additionalProperties": "unexpected properties are not allowed",
    "anyOf": "value does not match any allowed schema",
    "const": "value does not match the required constant",
    "contains": "array does not contain a required item",
    "dependentRequired": "dependent properties are missing",
    "enum": "value is not in the allowed set",
    "exclusiveMaximum": "number is above the allowed exclusive maximum",
    "exclusiveMinimum": "number is below the allowed exclusive minimum",
    "format": "value does not match the required format",
    "maxItems": "array contains too many items",
    "maxLength": "string is longer than allowed",
    "maxProperties": "object contains too many properties",
    "maximum": "number is above the allowed maximum",
    "minItems": "array contains too few items",
    "minLength": "string is shorter than allowed",
    "minProperties": "object contains too few properties",
    "minimum": "number is below the allowed minimum",
    "multipleOf": "number is not an allowed multiple",
    "not": "value matches a forbidden schema",
    "oneOf": "value does not match exactly one allowed schema",
    "pattern": "string does not match the required pattern",
    "patternProperties": "property does not match the required schema",
    "prefixItems": "array item does not match the required schema",
    "propertyNames": "property name is not allowed",
    "required": "required property is missing",
    "type": "value does not match the required type",
    "uniqueItems": "array items must be unique",
}
