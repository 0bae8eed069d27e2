// The kernels that ship, in OpenCL C, over packed arrays and without checks of indices.

kernel void saxpy(global const float* x, global float* y, ulong len, float a) {
    size_t i = get_global_id(0);
    if (i < len) y[i] = a * x[i] + y[i];
}

typedef struct {
    float place[2], speed[2];
    uint steps;
} particle;

kernel void update(global particle* particles, ulong len, float time, float pull_x, float pull_y) {
    size_t i = get_global_id(0);
    if (i >= len) return;
    particle p = particles[i];
    p.speed[0] += pull_x * time;
    p.speed[1] += pull_y * time;
    p.place[0] += p.speed[0] * time;
    p.place[1] += p.speed[1] * time;
    p.steps += 1;
    particles[i] = p;
}

kernel void stencil(global const float* before, global float* after, ulong side) {
    size_t y = get_global_id(1), x = get_global_id(0);
    if (y >= side || x >= side) return;
    bool inside = y > 0 && y + 1 < side && x > 0 && x + 1 < side;
    size_t at = y * side + x;
    after[at] = inside ? 0.25f * ((before[at - side] + before[at + side]) + (before[at - 1] + before[at + 1])) : before[at];
}

kernel void transpose(global const float* input, global float* output, ulong side) {
    local float tile[16][17];
    size_t x = get_local_id(0), y = get_local_id(1);
    size_t row = get_global_id(1), column = get_global_id(0);
    if (row < side && column < side) tile[y][x] = input[row * side + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    row = get_group_id(0) * 16 + y;
    column = get_group_id(1) * 16 + x;
    if (row < side && column < side) output[row * side + column] = tile[x][y];
}

kernel void matmul(global const float* a, global const float* b, global float* c, ulong side) {
    local float left[16][16];
    local float right[16][16];
    size_t x = get_local_id(0), y = get_local_id(1);
    size_t row = get_global_id(1), column = get_global_id(0);
    float sum = 0.0f;
    for (size_t start = 0; start < side; start += 16) {
        left[y][x] = row < side && start + x < side ? a[row * side + start + x] : 0.0f;
        right[y][x] = start + y < side && column < side ? b[(start + y) * side + column] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; ++k) sum += left[y][k] * right[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < side && column < side) c[row * side + column] = sum;
}

// OpenCL has no waves: both sums are found by trees, that of a wave by one of 32 work-items.
kernel void reduce(global const float* x, global float* by_tree, global float* by_wave, ulong len) {
    local float tree[256];
    local float parts[256];
    size_t i = get_global_id(0), at = get_local_id(0);
    float value = i < len ? x[i] : 0.0f;
    tree[at] = value;
    parts[at] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t step = 128; step > 0; step /= 2) {
        if (at < step) tree[at] += tree[at + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (size_t step = 16; step > 0; step /= 2) {
        if (at % 32 < step) parts[at] += parts[at + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (at == 0) {
        by_tree[get_group_id(0)] = tree[0];
        float all = 0.0f;
        for (size_t wave = 0; wave < 8; ++wave) all += parts[wave * 32];
        by_wave[get_group_id(0)] = all;
    }
}

kernel void scan(global const uint* x, global uint* totals, global uint* out, ulong len) {
    local uint sums[2][256];
    size_t i = get_global_id(0), at = get_local_id(0);
    sums[0][at] = i < len ? x[i] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    int from = 0;
    for (size_t step = 1; step < 256; step *= 2) {
        sums[1 - from][at] = sums[from][at] + (at >= step ? sums[from][at - step] : 0);
        from = 1 - from;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (i < len) out[i] = sums[from][at];
    if (at == 255) totals[get_group_id(0)] = sums[from][at];
}

kernel void histogram(global const uchar* values, global uint* totals, ulong len) {
    local uint bins[256];
    size_t at = get_local_id(0);
    bins[at] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (size_t i = get_global_id(0); i < len; i += get_global_size(0)) atomic_inc(&bins[values[i]]);
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(&totals[at], bins[at]);
}

long nearest(long at, long extent) { return at < 0 ? 0 : at < extent ? at : extent - 1; }

kernel void convolution(global const uchar* image, global uchar* result, ulong side, constant int* weights, uint shift) {
    local uchar tile[12][36];
    size_t row = get_global_id(1), column = get_global_id(0), channel = get_group_id(2);
    long top = (long)get_group_id(1) * 8 - 2, left = (long)get_group_id(0) * 32 - 2;
    for (uint at = get_local_id(1) * 32 + get_local_id(0); at < 12 * 36; at += 32 * 8) {
        uint y = at / 36, x = at % 36;
        tile[y][x] = image[(nearest(top + y, side) * side + nearest(left + x, side)) * 3 + channel];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row >= side || column >= side) return;
    int sum = 1 << shift >> 1;
    for (int y = 0; y < 5; ++y)
        for (int x = 0; x < 5; ++x) sum += weights[y * 5 + x] * tile[get_local_id(1) + y][get_local_id(0) + x];
    sum >>= shift;
    result[(row * side + column) * 3 + channel] = (uchar)clamp(sum, 0, 255);
}
