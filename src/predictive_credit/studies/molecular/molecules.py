"""SMILES to molecules with RDKit: what parses, what does not and why, and the form that names a molecule."""

from __future__ import annotations

from dataclasses import dataclass

from rdkit import Chem, rdBase

RDKIT_VERSION: str = rdBase.rdkitVersion  # what parses depends on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What RDKit made of one SMILES: a canonical form, or the kind of trouble and its detail."""

    canonical: str | None
    n_fragments: int
    trouble: str | None = None  # "unparsable" or "zero_atom"; None when it parsed
    detail: str = ""


def parse_block(block: tuple[str, ...]) -> list[Parsed]:
    """Parse a block of SMILES, one token each, in order; RDKit's own log stays silent."""
    with rdBase.BlockLogs():
        return [parse(smiles) for smiles in block]


def parse(smiles: str) -> Parsed:
    """Parse one SMILES. Nothing raises: trouble is part of the answer."""
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        return Parsed(canonical=None, n_fragments=0, trouble="unparsable", detail=_why(smiles))
    if mol.GetNumAtoms() == 0:  # RDKit takes '' for a molecule
        return Parsed(canonical=None, n_fragments=0, trouble="zero_atom", detail="no atoms")
    return Parsed(canonical=Chem.MolToSmiles(mol), n_fragments=len(Chem.GetMolFrags(mol)))


def _why(smiles: str) -> str:
    rough = Chem.MolFromSmiles(smiles, sanitize=False)
    if rough is None:
        return "not SMILES"
    problems = Chem.DetectChemistryProblems(rough)
    return str(problems[0].Message()) if problems else "refused by RDKit"
