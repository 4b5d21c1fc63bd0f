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

// Its lane v, as the contract has it.
inline void delta_lane(const DeltaStep& a, const DeltaDims& dims, int64_t v) {
  float learnt = 0, o = 0;
  for (int64_t i = 0; i < dims.key; ++i) {
    learnt = learnt + a.from[i * dims.value + v] * a.decay * a.k[i];
  }
  const float d = (a.v[v] - learnt) * a.beta;
  for (int64_t i = 0; i < dims.key; ++i) {
    const float next = a.from[i * dims.value + v] * a.decay + a.k[i] * d;
    if (a.to != nullptr) a.to[i * dims.value + v] = next;
    o = o + next * a.q[i];
  }
  a.d[v] = d;
  a.o[v] = o;
}
