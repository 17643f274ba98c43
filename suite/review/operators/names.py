"""The wrong name: of a variable, of an attribute, of who is asked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from suite.review.edits import Edit
from suite.review.operators.site import Site
from suite.review.scopes import shortened


def is_operand(site: Site, node: ast.AST) -> bool:
    parent = site.parent(node)
    return isinstance(parent, ast.BinOp | ast.Compare)


def readable(site: Site) -> Iterator[ast.Name]:
    """Walks the names that are read for their value: no function that is called, nobody whose attribute is taken."""
    for node in site.nodes:
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
            continue
        parent = site.parent(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            continue
        if node.id in {*site.scope.parameters, *site.scope.local} - {"self", "cls"}:
            yield node


def wrong_identifier(site: Site) -> Iterator[Edit]:
    for node in readable(site):
        parent = site.parent(node)
        above = site.parent(parent) if isinstance(parent, ast.Attribute) else None
        if is_operand(site, node) or (isinstance(above, ast.Call) and above.func is parent):
            continue
        for other in site.scope.rivals(node):
            yield site.text.replace("wrong_identifier", node, other)


def wrong_operand(site: Site) -> Iterator[Edit]:
    for node in readable(site):
        if is_operand(site, node):
            for other in site.scope.rivals(node):
                yield site.text.replace("wrong_operand", node, other)


def wrong_receiver(site: Site) -> Iterator[Edit]:
    for call in site.calls():
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(receiver, ast.Name) and receiver.id in {*site.scope.parameters, *site.scope.local} - {"self", "cls"}:
            for other in site.scope.rivals(receiver):
                yield site.text.replace("wrong_receiver", receiver, other)


def attributes_of(site: Site, receiver: str) -> dict[str, str]:
    """Lists the attributes that a name is known to have, with the kind of their values: by its class's annotations, else as this function reads them."""
    scope = site.scope
    is_own = receiver in ("self", "cls") and site.function.owner is not None
    owner = site.function.owner.name if is_own and site.function.owner is not None else scope.kinds.get(receiver, "")
    known = {name: shortened(kind) for name, kind in site.module.attributes.get(owner, {}).items()}
    if known:
        return known
    found: dict[str, str] = {}
    called = {id(node.func) for node in ast.walk(site.function.node) if isinstance(node, ast.Call)}
    for node in ast.walk(site.function.node):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == receiver and id(node) not in called:
            found.setdefault(node.attr, "")
    return found


def wrong_attribute(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name):
            continue
        parent = site.parent(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            continue
        known = attributes_of(site, node.value.id)
        if node.attr not in known:
            continue
        for other, kind in sorted(known.items()):
            if other != node.attr and kind == known[node.attr]:
                yield named(site, "wrong_attribute", node, other)


def named(site: Site, operator: str, node: ast.Attribute, name: str) -> Edit:
    end = site.text.end(node)
    return site.text.edit(operator, end - len(node.attr.encode()), end, name)


def missing_attribute_access(site: Site) -> Iterator[Edit]:
    for node in site.nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name | ast.Attribute):
            parent = site.parent(node)
            if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is node):
                continue
            if isinstance(node.value, ast.Name) and node.value.id not in {*site.scope.parameters, *site.scope.local} - {"self", "cls"}:
                continue  # a module or a class for one of its things is found by anybody
            edit = site.balanced("missing_attribute_access", site.text.end(node.value), site.text.end(node))
            if edit is not None:
                yield edit


OPERATORS = {
    "wrong_identifier": wrong_identifier,
    "wrong_operand": wrong_operand,
    "wrong_receiver": wrong_receiver,
    "wrong_attribute": wrong_attribute,
    "missing_attribute_access": missing_attribute_access,
}
