"""Streams of labelled examples: named data sets, CSV files and arrays, one example at a time.

>>> import streams
>>> stream = streams.load("car", shuffle=0)
>>> stream
<Stream 'car'.shuffle(0): 1728 examples, 6 features, 4 classes>
>>> for x, y in stream.take(2):
...     print(x.shape, y)
(6,) good
(6,) good

A stream is re-iterable and knows its `.classes`, `.features` and length; the objects `x` are read-only
rows of float64 and the labels `y` Python objects. Scaling and encoding are fixed beforehand or computed
over the whole stream, never fitted on its past (see `Scaling`). `gaussians` makes a stream whose label
probabilities are known; `flip_labels`, `change_point` and `label_shift` break any stream at a step.
"""

from streams.catalogue import DatasetInfo
from streams.datasets import datasets, load
from streams.example import Scaling, Stream
from streams.form import Form, to_json
from streams.frames import FrameStream, from_frames
from streams.kafka_topic import KafkaTopic
from streams.labels import Answer, Delayed, Immediate, Lazy, Question, RandomDelay, teach
from streams.lines import CSVRows, JSONLines
from streams.messages import BadMessage, Message, MessagesLost, Source, Tally
from streams.numbers import Waves, waves
from streams.redis_stream import RedisStream
from streams.river import from_river
from streams.schema import Nominal, Numeric, Ordinal, Skip
from streams.sources import from_arrays, from_csv
from streams.synthetic import Synthetic, categorical, change_point, flip_labels, gaussians, label_shift

__all__ = [
    "Answer",
    "BadMessage",
    "CSVRows",
    "DatasetInfo",
    "Delayed",
    "Form",
    "FrameStream",
    "Immediate",
    "JSONLines",
    "KafkaTopic",
    "Lazy",
    "Message",
    "MessagesLost",
    "Nominal",
    "Numeric",
    "Ordinal",
    "Question",
    "RandomDelay",
    "RedisStream",
    "Scaling",
    "Skip",
    "Source",
    "Stream",
    "Synthetic",
    "Tally",
    "Waves",
    "categorical",
    "change_point",
    "datasets",
    "flip_labels",
    "from_arrays",
    "from_csv",
    "from_frames",
    "from_river",
    "gaussians",
    "label_shift",
    "load",
    "teach",
    "to_json",
    "waves",
]
