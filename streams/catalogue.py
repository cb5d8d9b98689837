"""The published data sets: what each is, its file and checksum, and the schema of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from streams.files import DataFile, Progress
from streams.schema import Kind, Nominal, Numeric, Skip
from streams.tables import Table, read_csv

Where = Literal["generated", "packaged", "local", "cached", "download"]


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """What is known of a named data set before it is loaded.

    Parameters
    ----------
    name : str
        For `load`.
    rows, features, classes : int
        Examples, attributes (before nominal ones are encoded) and labels.
    notes : str
        The task and what to beware of.
    origin, licence : str
    where : {"generated", "packaged", "local", "cached", "download"}
        Where `load` would take it from now.
    """

    name: str
    rows: int
    features: int
    classes: int
    notes: str
    origin: str
    licence: str
    where: Where


@dataclass(frozen=True, kw_only=True)
class Published:
    """A set that is a CSV file with its original values and rows, the class in column "label"."""

    name: str
    rows: int
    features: int
    classes: tuple[str, ...]
    file: DataFile
    notes: str
    origin: str
    licence: str
    schema: Mapping[str, Kind] = field(default_factory=dict)

    def info(self) -> DatasetInfo:
        """Return what is known before loading."""
        return DatasetInfo(
            name=self.name,
            rows=self.rows,
            features=self.features,
            classes=len(self.classes),
            notes=self.notes,
            origin=self.origin,
            licence=self.licence,
            where=self.file.where(),
        )

    def read(self, base_url: str | None, progress: Progress | None) -> Table:
        """Return the encoded table of the checked file."""
        path = self.file.find(self.origin, base_url, progress)
        return read_csv(path, "label", self.schema, self.classes, ",")


def _each(kind: Kind, *names: str) -> dict[str, Kind]:
    return {name: kind for text in names for name in text.split()}


# Nominal values are not listed: the checksum fixes the file, hence its values.
_NAMES = Nominal()
_UNKNOWN_IS_A_VALUE = Nominal(missing="?")
_MEDIAN = Numeric(missing="?", fill="median")

_MUSHROOM = _each(
    _NAMES,
    "cap-shape cap-surface cap-color bruises odor gill-attachment gill-spacing gill-size gill-color",
    "stalk-shape stalk-surface-above-ring stalk-surface-below-ring stalk-color-above-ring",
    "stalk-color-below-ring veil-type veil-color ring-number ring-type spore-print-color population habitat",
) | _each(_UNKNOWN_IS_A_VALUE, "stalk-root")

_BASES = Nominal(("a", "c", "g", "t"))
_PROMOTERS = {f"p{position}": _BASES for position in (*range(-50, 0), *range(1, 8))}

_GERMAN = _each(
    _NAMES,
    "checking_status credit_history purpose savings employment personal_status_sex other_debtors",
    "property other_installment_plans housing job telephone foreign_worker",
)

_ADULT = _each(_NAMES, "education marital_status relationship race sex") | _each(
    _UNKNOWN_IS_A_VALUE, "workclass occupation native_country"
)

_HEART = _each(_NAMES, "cp restecg thal")

_CERVICAL = {
    column: _MEDIAN
    for column in (
        "Number of sexual partners",
        "First sexual intercourse",
        "Num of pregnancies",
        "Smokes",
        "Smokes (years)",
        "Smokes (packs/year)",
        "Hormonal Contraceptives",
        "Hormonal Contraceptives (years)",
        "IUD",
        "IUD (years)",
        "STDs",
        "STDs (number)",
        "STDs:condylomatosis",
        "STDs:cervical condylomatosis",
        "STDs:vaginal condylomatosis",
        "STDs:vulvo-perineal condylomatosis",
        "STDs:syphilis",
        "STDs:pelvic inflammatory disease",
        "STDs:genital herpes",
        "STDs:molluscum contagiosum",
        "STDs:AIDS",
        "STDs:HIV",
        "STDs:Hepatitis B",
        "STDs:HPV",
        "STDs: Time since first diagnosis",
        "STDs: Time since last diagnosis",
    )
} | _each(Skip(), "Hinselmann Schiller Citology")

_UCI = "CC BY 4.0 (UCI)"
_UNSTATED = "no licence stated by the authors; free for research"

PUBLISHED = (
    Published(
        name="wine_red",
        rows=1599,
        features=11,
        classes=("3", "4", "5", "6", "7", "8"),
        file=DataFile(
            "wine_quality_red.csv", 84173, "cd604e5fbe301b810400d7734cb1bd8dcb0161e37aa904053ea2ef4d1533af53"
        ),
        notes="Quality of red wine, an ordinal score.",
        origin="UCI 186 Wine Quality; P. Cortez, A. Cerdeira, F. Almeida, T. Matos, J. Reis 2009; doi 10.24432/C56S3T",
        licence=_UCI,
    ),
    Published(
        name="covtype",
        rows=581012,
        features=54,
        classes=("1", "2", "3", "4", "5", "6", "7"),
        file=DataFile("covtype.csv.gz", 10780988, "5ad3624ba0a3aba29355f148240a27ed2d29ecf82545914128d730231e3d8271"),
        notes="Forest cover type. Rows 1-11340 hold 1620 and rows 1-15120 hold 2160 of each class: "
        "file order is not exchangeable.",
        origin="UCI 31 Covertype; J. Blackard, D. Dean, C. Anderson, Colorado State Univ. 1998; doi 10.24432/C50K5N",
        licence=_UCI + "; reuse unlimited with retention of copyright notice for Jock A. Blackard "
        "and Colorado State University",
    ),
    Published(
        name="pima",
        rows=768,
        features=8,
        classes=("0", "1"),
        file=DataFile("pima_diabetes.csv", 23324, "8b516b632b3842287a3a8d25f8e7fd9948b106d8dc16bc561f8179b7a9c39114"),
        notes="Onset of diabetes. Zeros in plas, pres, skin, insu, mass stand for missing and are left as they are.",
        origin="Pima Indians Diabetes; NIDDK, donated by V. Sigillito 1990 (J. W. Smith et al. 1988);"
        " withdrawn from UCI since",
        licence="UCI-era: no usage restriction stated; the Kaggle edition is CC0",
    ),
    Published(
        name="optdigits",
        rows=5620,
        features=64,
        classes=("0", "1", "2", "3", "4", "5", "6", "7", "8", "9"),
        file=DataFile("optdigits.csv", 828613, "7321a5104befe0a3060ee09a5cd71dab890f5d110ee75f2799dc4daa2a2e4d47"),
        notes="Handwritten digits, 8 x 8 counts 0..16. The last 1797 rows are the original test part (digits).",
        origin="UCI 80 Optical Recognition of Handwritten Digits; E. Alpaydin, C. Kaynak 1998; doi 10.24432/C50P49",
        licence=_UCI,
    ),
    Published(
        name="ionosphere",
        rows=351,
        features=34,
        classes=("b", "g"),
        file=DataFile("ionosphere.csv", 76609, "cd54a0a9e5e1f425f26d1aa99103615672a65bcb9a93b0afaf544ceaa61d4d06"),
        notes="Good or bad radar returns. The 2nd feature is constant.",
        origin="UCI 52 Ionosphere; V. Sigillito, S. Wing, L. Hutton, K. Baker 1989; doi 10.24432/C5W01B",
        licence=_UCI,
    ),
    Published(
        name="liver",
        rows=345,
        features=6,
        classes=("1", "2"),
        file=DataFile("liver_bupa.csv", 7340, "41fb14b2bd305f987e267b5674dae1cbc649734f9ed0f450935b65df5f016cb5"),
        notes="Selector column of the liver disorders data, by custom the class though meant as a train/test split.",
        origin="UCI 60 Liver Disorders; BUPA Medical Research, donated by R. Forsyth 1990; doi 10.24432/C54G67",
        licence=_UCI,
    ),
    Published(
        name="mushroom",
        rows=8124,
        features=22,
        classes=("e", "p"),
        file=DataFile("mushroom.csv", 374004, "e3e3f99e4213f2ca328009f6b67ae57d5529099704d4613548b2aedc6e055eb4"),
        notes='Edible or poisonous. "?" in stalk-root is a value of its own.',
        origin="UCI 73 Mushroom; from the Audubon Society Field Guide, donated by J. Schlimmer 1987; "
        "doi 10.24432/C5959T",
        licence=_UCI,
        schema=_MUSHROOM,
    ),
    Published(
        name="promoters",
        rows=106,
        features=57,
        classes=("+", "-"),
        file=DataFile("promoters.csv", 12564, "d02d9afdc0e4cee8fe73f8c9217d5856197b9df82119b0bc86b8d7d91aad6cd6"),
        notes="DNA promoter or not, 57 positions. Sorted by class: shuffle.",
        origin="UCI 67 Molecular Biology (Promoter Gene Sequences); C. Harley, R. Reynolds, M. "
        "Noordewier, donated 1990; doi 10.24432/C5S01D",
        licence=_UCI,
        schema=_PROMOTERS,
    ),
    Published(
        name="wdbc",
        rows=569,
        features=30,
        classes=("B", "M"),
        file=DataFile(
            "breast_cancer_wdbc.csv",
            120350,
            "7da8543fbd385c7305670494aadfcb8774b4a20caabcb9ffc627b22965b66e5c",
        ),
        notes="Malignant (M) or benign (B) tumour: the same rows as breast_cancer.",
        origin="UCI 17 Breast Cancer Wisconsin (Diagnostic); W. Wolberg, O. Mangasarian, N. Street, "
        "W. Street 1993; doi 10.24432/C5DW2B",
        licence=_UCI,
    ),
    Published(
        name="german",
        rows=1000,
        features=20,
        classes=("1", "2"),
        file=DataFile("german_credit.csv", 80053, "5db4cb268beec226a70e6721d7884eca4ca0f19576138f0678785a5b27690321"),
        notes="Good (1) or bad (2) credit.",
        origin="UCI 144 Statlog (German Credit Data); H. Hofmann 1994; doi 10.24432/C5NC77",
        licence=_UCI,
        schema=_GERMAN,
    ),
    Published(
        name="adult",
        rows=32561,
        features=14,
        classes=("<=50K", ">50K"),
        file=DataFile("adult.csv.gz", 398784, "14236c948670c0ab8e7b685c036517ebe4fe55a8ca679e69aeb4cc7cf1464196"),
        notes='Income over 50K, training part. "?" is a value of its own.',
        origin="UCI 2 Adult; B. Becker, R. Kohavi 1996; doi 10.24432/C5XW20",
        licence=_UCI,
        schema=_ADULT,
    ),
    Published(
        name="heart",
        rows=270,
        features=13,
        classes=("absent", "present"),
        file=DataFile("heart_statlog.csv", 11308, "d9c34edd895286e1c9bb27aaeb489a95dbd3b011e26a06351f2054429fb763e9"),
        notes="Heart disease. cp, restecg and thal are nominal codes.",
        origin="UCI 145 Statlog (Heart); doi 10.24432/C57303",
        licence=_UCI,
        schema=_HEART,
    ),
    Published(
        name="divorce",
        rows=170,
        features=54,
        classes=("0", "1"),
        file=DataFile(
            "divorce_predictors.csv",
            19021,
            "dbe8f8e560047a64617ce6146f9c2636a2cf314585ac446fcc846ef900ed648c",
        ),
        notes="Divorced or not, 54 answers on a scale 0..4. Sorted by class: shuffle.",
        origin="UCI 497 Divorce Predictors; M. Yontem, K. Adem, T. Ilhan, S. Kilicarslan 2019",
        licence=_UCI,
    ),
    Published(
        name="cervical",
        rows=858,
        features=32,
        classes=("0", "1"),
        file=DataFile(
            "cervical_cancer.csv", 102058, "f8e51e419e1e3c784982cd86b890de7ad6fc0b16c462b05b3f276539b97fe767"
        ),
        notes="Biopsy. The other three targets are skipped; missing values become the medians of the whole stream.",
        origin="UCI 383 Cervical Cancer (Risk Factors); K. Fernandes, J. Cardoso, J. Fernandes 2017; "
        "doi 10.24432/C5Z310",
        licence=_UCI,
        schema=_CERVICAL,
    ),
    Published(
        name="colon",
        rows=62,
        features=2000,
        classes=("n", "t"),
        file=DataFile("colon_alon.csv", 840503, "1c9ca02f1948a0fc5969519886477c7bb22a312078ace5d4753d8a1d29c05aa2"),
        notes="Tumour (t) or normal (n) tissue, gene expression.",
        origin="Colon tumour microarray; U. Alon et al., PNAS 96 (1999); via Bioconductor colonCA and"
        " R datamicroarray (MIT)",
        licence=_UNSTATED,
    ),
    Published(
        name="leukemia",
        rows=72,
        features=7129,
        classes=("ALL", "AML"),
        file=DataFile(
            "leukemia_golub.csv.gz",
            890584,
            "acfbd5b458aa9ae0de4056d1fb0b8dd363cf7e3247255bd69c3044635646862c",
        ),
        notes="ALL or AML, gene expression. The first 38 rows are the original training set.",
        origin="ALL/AML leukaemia microarray; T. Golub et al., Science 286 (1999); via Bioconductor "
        "golubEsets and R datamicroarray (MIT)",
        licence=_UNSTATED,
    ),
    Published(
        name="srbct",
        rows=83,
        features=2308,
        classes=("BL", "EWS", "NB", "RMS"),
        file=DataFile("srbct_khan.csv.gz", 844368, "94586ef9191b9cd48dea78fbd18b7486a24e77e1f39404f5e2e8f32b8d5282dd"),
        notes="Small round blue cell tumours, gene expression. The first 63 rows are the original training set.",
        origin="Small round blue cell tumours; J. Khan et al., Nature Medicine 7 (2001); via the ISLP package (BSD)",
        licence=_UNSTATED,
    ),
    Published(
        name="banknote",
        rows=1372,
        features=4,
        classes=("0", "1"),
        file=DataFile("banknote.csv", 45071, "fd54cdab8b3a4033b936d4f85c13a2a7cccbfabb55ea17e3cbed63df2043354c"),
        notes="Genuine or forged banknote. Sorted by class: shuffle.",
        origin="UCI 267 Banknote Authentication; V. Lohweg 2012; doi 10.24432/C55P57",
        licence=_UCI,
    ),
    Published(
        name="elec2",
        rows=45312,
        features=8,
        classes=("DOWN", "UP"),
        file=DataFile("elec2.csv.gz", 693656, "df047cd79023be6a253d15c8532bc07c63e85b3223a550a3d9adc18ccc153386"),
        notes="Electricity price up or down, half-hourly in time order: drifts, so not exchangeable.",
        origin="Electricity (ELEC2), New South Wales market; M. Harries 1999, normalised by J. Gama "
        "et al. 2004; OpenML 151",
        licence='OpenML: "Public"',
    ),
)
