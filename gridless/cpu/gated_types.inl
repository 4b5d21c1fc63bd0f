// What gated.inl asks of the files that include it.

struct DeltaDims {
  int64_t key, value;  // of a head
};

// One token of one value head: d and o, and the matrix after it (to == nullptr: not wanted).
struct DeltaStep {
  const float* from;  // [key, value]
  float* to;          // may be `from`
  const float *k, *q, *v;
  float decay, beta;
  float *d, *o;
};
