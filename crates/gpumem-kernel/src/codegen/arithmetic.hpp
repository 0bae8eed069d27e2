// Rust's arithmetic in C++: what kernels that are written in Rust need beside the prelude.
//
// Integers wrap, shifts take the low bits of their count, casts from floats saturate: what Rust does without overflow checks,
// and never what C++ leaves undefined. What panics in Rust in every build stops the kernel: a failed `assert!`, a `clamp` whose least
// is above its most, and with GPUMEM_BOUNDS a division by zero or of the least number by -1, and a step of zero.

namespace gpumem {

// A truth value in one byte, of which any bits but 0 are true: an element of arrays, where a bool may not have other bits.
struct boolean {
    u8 byte;
    boolean() = default;
    GPUMEM_DEVICE boolean(bool value) : byte(value) {}
    GPUMEM_DEVICE operator bool() const { return byte != 0; }
};

namespace rust {

// ---- integers ---------------------------------------------------------------------------------------------------------

// The least and the greatest number of a type, the unsigned type in which its arithmetic wraps, and that of its own width.
template <class T> struct limits;
#define GPUMEM_LIMITS(T, Bits, Unsigned, Width, Least, Most)       \
    template <> struct limits<T> {                                 \
        typedef Bits bits;                                         \
        typedef Unsigned magnitude;                                \
        static constexpr u32 width = Width;                        \
        static constexpr bool is_signed = (Least) != 0;            \
        GPUMEM_DEVICE static constexpr T least() { return (T)(Least); } \
        GPUMEM_DEVICE static constexpr T most() { return (T)(Most); }   \
    };
GPUMEM_LIMITS(u8, u32, u8, 8, 0, 0xff)
GPUMEM_LIMITS(i8, u32, u8, 8, -0x80, 0x7f)
GPUMEM_LIMITS(u16, u32, u16, 16, 0, 0xffff)
GPUMEM_LIMITS(i16, u32, u16, 16, -0x8000, 0x7fff)
GPUMEM_LIMITS(u32, u32, u32, 32, 0, 0xffffffffu)
GPUMEM_LIMITS(i32, u32, u32, 32, -0x7fffffff - 1, 0x7fffffff)
GPUMEM_LIMITS(u64, u64, u64, 64, 0, 0xffffffffffffffffull)
GPUMEM_LIMITS(i64, u64, u64, 64, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll)
#undef GPUMEM_LIMITS

// Stops the kernel where Rust would panic: what the author has written down as a condition.
GPUMEM_DEVICE void asserted(bool holds) {
    if (!holds) detail::stop();
}
// The same, of divisors and steps.
GPUMEM_DEVICE void require(bool holds) {
#if GPUMEM_BOUNDS
    asserted(holds);
#else
    (void)holds;
#endif
}

// False, which compilers must not know. A loop that may have no end returns on this condition in each turn. C++ lets compilers assume
// that every loop ends: they drop checks, and write before a loop what comes after it. NVRTC does not know the number. The compiler of
// PTX does, but leaves a loop with a performance monitor's event alone, as AMD's compiler does one with an `asm`.
GPUMEM_DEVICE bool never() {
#ifdef __CUDA_ARCH__
    u32 word;
    asm volatile("pmevent 0; mov.u32 %0, 0;" : "=r"(word));
    return word != 0;
#else
    asm volatile("");
    return false;
#endif
}

template <class T> GPUMEM_DEVICE T add(T a, T b) {
    typedef typename limits<T>::bits bits;
    return (T)((bits)a + (bits)b);
}
template <class T> GPUMEM_DEVICE T sub(T a, T b) {
    typedef typename limits<T>::bits bits;
    return (T)((bits)a - (bits)b);
}
// A factor. Where AMD's compiler knows that both have the upper bits of a signed number of 24 bits, it multiplies in as many, also where
// the 64 bits of the product are those of numbers without signs. Of the result of an `asm` it knows nothing.
template <class T> GPUMEM_DEVICE T factor(T a) {
#ifdef __AMDGCN__
    const bool is_short = sizeof(T) == 8 && (u64)a >> 32 == 0, is_small = (u64)a >> 31 == 0;
    u32 low = (u32)a;
    if (__builtin_constant_p(is_short) && is_short && !(__builtin_constant_p(is_small) && is_small)) {
        asm("" : "+v"(low));
        return (T)low;
    }
#endif
    return a;
}
template <class T> GPUMEM_DEVICE T mul(T a, T b) {
    typedef typename limits<T>::bits bits;
    return (T)((bits)factor(a) * (bits)factor(b));
}
template <class T> GPUMEM_DEVICE T neg(T a) { return sub((T)0, a); }
template <class T> GPUMEM_DEVICE bool divides(T a, T b) {
    return b != 0 && !(limits<T>::is_signed && a == limits<T>::least() && b == (T)-1);
}
// An operand of a division. AMD's compiler counts the equal upper bits of both, and divides in fewer bits where there are many: in 32, and
// then in 24. It does so without signs, too, where those bits may be ones. Of the result of an `asm` it knows none.
template <class T> GPUMEM_DEVICE T operand(T a) {
#ifdef __AMDGCN__
    const bool is_small = limits<T>::is_signed || (u64)a >> 31 == 0, is_short = (u64)a >> 32 == 0;
    u32 low = (u32)a;
    if (__builtin_constant_p(is_small) && is_small) return a;
    if (__builtin_constant_p(is_short) && is_short) {
        asm("" : "+v"(low));
        return (T)low;
    }
    asm("" : "+v"(a));
#endif
    return a;
}
template <class T> GPUMEM_DEVICE T div(T a, T b) {
    require(divides(a, b));
    return (T)(operand(a) / operand(b));
}
template <class T> GPUMEM_DEVICE T rem(T a, T b) {
    require(divides(a, b));
    return (T)(operand(a) % operand(b));
}
template <class T, class Count> GPUMEM_DEVICE T shl(T a, Count count) {
    typedef typename limits<T>::bits bits;
    return (T)((bits)a << ((u32)count & (limits<T>::width - 1)));
}
template <class T, class Count> GPUMEM_DEVICE T shr(T a, Count count) {
    return (T)(a >> ((u32)count & (limits<T>::width - 1)));
}

// Also of floats: of a number and a NaN the number, of equal ones the first, which the functions of C++ leave open for zeros.
template <class T> GPUMEM_DEVICE T min(T a, T b) { return gpumem::detail::least()(a, b); }
template <class T> GPUMEM_DEVICE T max(T a, T b) { return gpumem::detail::greatest()(a, b); }
template <class T> GPUMEM_DEVICE T abs(T a) { return a < 0 ? neg(a) : a; }
template <class T> GPUMEM_DEVICE T wrapping_add(T a, T b) { return add(a, b); }
template <class T> GPUMEM_DEVICE T wrapping_sub(T a, T b) { return sub(a, b); }
template <class T> GPUMEM_DEVICE T wrapping_mul(T a, T b) { return mul(a, b); }
template <class T> GPUMEM_DEVICE T wrapping_neg(T a) { return neg(a); }
template <class T> GPUMEM_DEVICE T saturating_add(T a, T b) {
    T sum = add(a, b);
    if (limits<T>::is_signed) return b < 0 ? (sum > a ? limits<T>::least() : sum) : (sum < a ? limits<T>::most() : sum);
    return sum < a ? limits<T>::most() : sum;
}
template <class T> GPUMEM_DEVICE T saturating_sub(T a, T b) {
    T difference = sub(a, b);
    if (limits<T>::is_signed) {
        return b < 0 ? (difference < a ? limits<T>::most() : difference) : (difference > a ? limits<T>::least() : difference);
    }
    return a < b ? (T)0 : difference;
}
// The bits of a number, without those that its sign is copied to.
template <class T> GPUMEM_DEVICE typename limits<T>::bits bits_of(T a) {
    typedef typename limits<T>::bits bits;
    return (bits)a & (~(bits)0 >> (8 * sizeof(bits) - limits<T>::width));
}
template <class T> GPUMEM_DEVICE T rotate_left(T a, u32 count) {
    const u32 mask = limits<T>::width - 1, left = count & mask;
    return (T)((bits_of(a) << left) | (bits_of(a) >> ((limits<T>::width - left) & mask)));
}
template <class T> GPUMEM_DEVICE T rotate_right(T a, u32 count) {
    return rotate_left(a, limits<T>::width - (count & (limits<T>::width - 1)));
}
template <class T> GPUMEM_DEVICE u32 count_ones(T a) { return (u32)__popcll(bits_of(a)); }
template <class T> GPUMEM_DEVICE u32 leading_zeros(T a) {
    return (u32)__clzll((i64)bits_of(a)) - (64 - limits<T>::width);
}
template <class T> GPUMEM_DEVICE u32 trailing_zeros(T a) {
    return a == 0 ? limits<T>::width : (u32)__ffsll((i64)a) - 1;
}

template <class T> GPUMEM_DEVICE u32 count_zeros(T a) { return limits<T>::width - count_ones(a); }
template <class T> GPUMEM_DEVICE u32 leading_ones(T a) { return leading_zeros((T)~a); }
template <class T> GPUMEM_DEVICE u32 trailing_ones(T a) { return trailing_zeros((T)~a); }
template <class T> GPUMEM_DEVICE T swap_bytes(T a) {
    typename limits<T>::bits swapped = 0;
    for (u32 at = 0; at < limits<T>::width; at += 8) swapped = (swapped << 8) | ((bits_of(a) >> at) & 0xff);
    return (T)swapped;
}
template <class T> GPUMEM_DEVICE T reverse_bits(T a) { return (T)(__brevll(bits_of(a)) >> (64 - limits<T>::width)); }
template <class T> GPUMEM_DEVICE T wrapping_abs(T a) { return abs(a); }
template <class T> GPUMEM_DEVICE T wrapping_shl(T a, u32 count) { return shl(a, count); }
template <class T> GPUMEM_DEVICE T wrapping_shr(T a, u32 count) { return shr(a, count); }
template <class T> GPUMEM_DEVICE T signum(T a) { return (T)((a > 0) - (a < 0)); }
template <class T> GPUMEM_DEVICE bool is_positive(T a) { return a > 0; }
template <class T> GPUMEM_DEVICE bool is_negative(T a) { return a < 0; }
template <class T> GPUMEM_DEVICE typename limits<T>::magnitude abs_diff(T a, T b) {
    return (typename limits<T>::magnitude)(a < b ? sub(b, a) : sub(a, b));
}
template <class T> GPUMEM_DEVICE typename limits<T>::magnitude unsigned_abs(T a) {
    return (typename limits<T>::magnitude)abs(a);
}
template <class T> GPUMEM_DEVICE T rem_euclid(T a, T b) {
    T rest = rem(a, b);
    return rest < 0 ? add(rest, abs(b)) : rest;
}
template <class T> GPUMEM_DEVICE T div_euclid(T a, T b) {
    T quotient = div(a, b);
    return rem(a, b) < 0 ? (b > 0 ? sub(quotient, (T)1) : add(quotient, (T)1)) : quotient;
}

template <class T> GPUMEM_DEVICE bool is_multiple_of(T a, T b) { return b == 0 ? a == 0 : rem(a, b) == 0; }

// The next of a range with steps, which does not wrap past its end.
template <class T> GPUMEM_DEVICE T next(T at, u64 step, T end) {
    typedef typename limits<T>::bits bits;
    return (u64)(bits)((bits)end - (bits)at) > step ? (T)((bits)at + (bits)step) : end;
}
GPUMEM_DEVICE u64 step(u64 step) {
    require(step != 0);
    return step;
}
// Any other range: `a..b` or `a..=b`, backwards or not, with a step.
template <class T> struct steps {
    typedef typename limits<T>::bits bits;
    T at;
    u64 left, distance;
    bool backwards, more;
    GPUMEM_DEVICE steps(T from, T to, bool inclusive, bool reversed, u64 step) {
        distance = rust::step(step);
        backwards = reversed;
        more = inclusive ? from <= to : from < to;
        // Between the first and the last of the range.
        left = more ? (u64)(bits)((bits)to - (bits)from) - (inclusive ? 0 : 1) : 0;
        T last = inclusive ? to : sub(to, (T)1);
        at = reversed ? last : from;
        first = true;
    }
    GPUMEM_DEVICE bool next() {
        if (first) {
            first = false;
            return more;
        }
        if (left < distance) return false;
        left -= distance;
        at = backwards ? (T)((bits)at - (bits)distance) : (T)((bits)at + (bits)distance);
        return true;
    }

   private:
    bool first;
};

// An axis or a lane as the prelude takes it; beyond all of them stays beyond. Arrays may have more axes than launches.
GPUMEM_DEVICE int axis(u64 axis) { return axis < 0x7fffffff ? (int)axis : 0x7fffffff; }
GPUMEM_DEVICE u32 lane(u64 lane) { return lane < 0x7fffffff ? (u32)lane : 0x7fffffffu; }

// ---- floats -----------------------------------------------------------------------------------------------------------

// `as` from a float: towards zero, saturating, 0 for NaN.
template <class To, class From> GPUMEM_DEVICE To saturated(From value) {
    if (value != value) return (To)0;
    if (value <= (From)limits<To>::least()) return limits<To>::least();
    if (value >= (From)limits<To>::most()) return limits<To>::most();
    return (To)value;
}
template <class To> GPUMEM_DEVICE To cast(float value) { return saturated<To>(value); }
template <class To> GPUMEM_DEVICE To cast(double value) { return saturated<To>(value); }

#define GPUMEM_ONE(name, function)                                        \
    GPUMEM_DEVICE float name(float x) { return ::function##f(x); }        \
    GPUMEM_DEVICE double name(double x) { return ::function(x); }
#define GPUMEM_TWO(name, function)                                                    \
    GPUMEM_DEVICE float name(float x, float y) { return ::function##f(x, y); }        \
    GPUMEM_DEVICE double name(double x, double y) { return ::function(x, y); }
GPUMEM_ONE(sqrt, sqrt) GPUMEM_ONE(cbrt, cbrt) GPUMEM_ONE(sin, sin) GPUMEM_ONE(cos, cos) GPUMEM_ONE(tan, tan)
GPUMEM_ONE(asin, asin) GPUMEM_ONE(acos, acos) GPUMEM_ONE(atan, atan) GPUMEM_ONE(sinh, sinh)
GPUMEM_ONE(cosh, cosh) GPUMEM_ONE(tanh, tanh) GPUMEM_ONE(asinh, asinh) GPUMEM_ONE(acosh, acosh)
GPUMEM_ONE(atanh, atanh) GPUMEM_ONE(exp, exp) GPUMEM_ONE(exp2, exp2) GPUMEM_ONE(exp_m1, expm1)
GPUMEM_ONE(ln, log) GPUMEM_ONE(ln_1p, log1p) GPUMEM_ONE(log2, log2) GPUMEM_ONE(log10, log10)
GPUMEM_ONE(floor, floor) GPUMEM_ONE(ceil, ceil) GPUMEM_ONE(trunc, trunc)
GPUMEM_ONE(abs, fabs)
GPUMEM_TWO(powf, pow) GPUMEM_TWO(atan2, atan2) GPUMEM_TWO(hypot, hypot) GPUMEM_TWO(copysign, copysign)
GPUMEM_TWO(rem, fmod)
#undef GPUMEM_ONE
#undef GPUMEM_TWO
// What rounds to zero keeps its sign, which AMD's functions lose.
GPUMEM_DEVICE float round(float x) { return ::copysignf(::roundf(x), x); }
GPUMEM_DEVICE double round(double x) { return ::copysign(::round(x), x); }
#define GPUMEM_SIGNS(T, name)                                                                     \
    GPUMEM_DEVICE T signum(T x) { return x != x ? x : name((T)1, x); }                            \
    GPUMEM_DEVICE bool is_sign_negative(T x) { return name((T)1, x) < 0; }                        \
    GPUMEM_DEVICE bool is_sign_positive(T x) { return name((T)1, x) > 0; }                        \
    GPUMEM_DEVICE T rem_euclid(T a, T b) {                                                        \
        T rest = rem(a, b);                                                                       \
        return rest < 0 ? rest + abs(b) : rest;                                                   \
    }                                                                                             \
    GPUMEM_DEVICE T div_euclid(T a, T b) {                                                        \
        T quotient = trunc(a / b);                                                                \
        return rem(a, b) < 0 ? (b > 0 ? quotient - 1 : quotient + 1) : quotient;                  \
    }
GPUMEM_SIGNS(float, ::copysignf) GPUMEM_SIGNS(double, ::copysign)
#undef GPUMEM_SIGNS

// Half precision: each operation in float, rounded. The sign is that of the bits, which the conversion of a NaN loses: a negation
// changes no other bit.
#define GPUMEM_HALF(T)                                                                        \
    GPUMEM_DEVICE T add(T a, T b) { return T((float)a + (float)b); }                          \
    GPUMEM_DEVICE T sub(T a, T b) { return T((float)a - (float)b); }                          \
    GPUMEM_DEVICE T mul(T a, T b) { return T((float)a * (float)b); }                          \
    GPUMEM_DEVICE T div(T a, T b) { return T((float)a / (float)b); }                          \
    GPUMEM_DEVICE T rem(T a, T b) { return T(rem((float)a, (float)b)); }                      \
    GPUMEM_DEVICE T neg(T x) {                                                                \
        x.raw ^= 0x8000;                                                                      \
        return x;                                                                             \
    }                                                                                         \
    GPUMEM_DEVICE bool is_sign_negative(T x) { return x.raw >> 15 != 0; }                     \
    GPUMEM_DEVICE bool is_sign_positive(T x) { return x.raw >> 15 == 0; }                     \
    GPUMEM_DEVICE T signum(T x) { return x != x ? x : T(is_sign_negative(x) ? -1.0f : 1.0f); }
GPUMEM_HALF(f16) GPUMEM_HALF(bf16)
#undef GPUMEM_HALF

// The sum of two numbers of any type; integers wrap.
template <class T> GPUMEM_DEVICE T plus(T a, T b) { return add(a, b); }
GPUMEM_DEVICE float plus(float a, float b) { return a + b; }
GPUMEM_DEVICE double plus(double a, double b) { return a + b; }
// As `plus`: the product.
template <class T> GPUMEM_DEVICE T times(T a, T b) { return mul(a, b); }
GPUMEM_DEVICE float times(float a, float b) { return a * b; }
GPUMEM_DEVICE double times(double a, double b) { return a * b; }

GPUMEM_DEVICE float mul_add(float a, float b, float c) { return ::fmaf(a, b, c); }
GPUMEM_DEVICE double mul_add(double a, double b, double c) { return ::fma(a, b, c); }
template <class T> GPUMEM_DEVICE T recip(T x) { return (T)1 / x; }
template <class T> GPUMEM_DEVICE T fract(T x) { return x - trunc(x); }
template <class T> GPUMEM_DEVICE bool is_nan(T x) { return x != x; }
template <class T> GPUMEM_DEVICE bool is_finite(T x) { return x - x == 0; }
template <class T> GPUMEM_DEVICE bool is_infinite(T x) { return x == x && x - x != 0; }
// By squaring, in the order of the host.
template <class T> GPUMEM_DEVICE T powi(T x, i32 n) {
    T result = 1;
    for (i32 rest = n;;) {
        if (rest & 1) result *= x;
        rest /= 2;
        if (rest == 0) break;
        x *= x;
    }
    return n < 0 ? 1 / result : result;
}
GPUMEM_DEVICE u32 to_bits(float x) { return detail::bits<u32>(x); }
GPUMEM_DEVICE u64 to_bits(double x) { return detail::bits<u64>(x); }
GPUMEM_DEVICE u16 to_bits(f16 x) { return x.raw; }
GPUMEM_DEVICE u16 to_bits(bf16 x) { return x.raw; }
template <class T> GPUMEM_DEVICE float to_f32(T x) { return (float)x; }
template <class T> GPUMEM_DEVICE double to_f64(T x) { return (double)(float)x; }

// Complex numbers, as the crate `num-complex` has them: with a number on one side, the parts are changed alone.
template <class T> GPUMEM_DEVICE complex<T> add(complex<T> a, complex<T> b) { return a + b; }
template <class T> GPUMEM_DEVICE complex<T> add(complex<T> a, T b) { return complex<T>(a.re + b, a.im); }
template <class T> GPUMEM_DEVICE complex<T> add(T a, complex<T> b) { return complex<T>(a + b.re, b.im); }
template <class T> GPUMEM_DEVICE complex<T> sub(complex<T> a, complex<T> b) { return a - b; }
template <class T> GPUMEM_DEVICE complex<T> sub(complex<T> a, T b) { return complex<T>(a.re - b, a.im); }
template <class T> GPUMEM_DEVICE complex<T> sub(T a, complex<T> b) { return complex<T>(a - b.re, (T)0 - b.im); }
template <class T> GPUMEM_DEVICE complex<T> mul(complex<T> a, complex<T> b) { return a * b; }
template <class T> GPUMEM_DEVICE complex<T> mul(complex<T> a, T b) { return complex<T>(a.re * b, a.im * b); }
template <class T> GPUMEM_DEVICE complex<T> mul(T a, complex<T> b) { return complex<T>(a * b.re, a * b.im); }
template <class T> GPUMEM_DEVICE complex<T> div(complex<T> a, complex<T> b) {
    T norm = b.norm_sqr();
    return complex<T>((a.re * b.re + a.im * b.im) / norm, (a.im * b.re - a.re * b.im) / norm);
}
template <class T> GPUMEM_DEVICE complex<T> div(complex<T> a, T b) { return complex<T>(a.re / b, a.im / b); }
template <class T> GPUMEM_DEVICE complex<T> div(T a, complex<T> b) {
    T norm = b.norm_sqr();
    return complex<T>(a * b.re / norm, (T)0 - a * b.im / norm);
}
template <class T> GPUMEM_DEVICE complex<T> negated(complex<T> a) { return complex<T>(-a.re, -a.im); }
template <class T> GPUMEM_DEVICE complex<T> conj(complex<T> a) { return a.conj(); }
template <class T> GPUMEM_DEVICE T norm_sqr(complex<T> a) { return a.norm_sqr(); }
// What is left of a division whose parts are rounded towards zero.
template <class T> GPUMEM_DEVICE complex<T> rem(complex<T> a, complex<T> b) {
    complex<T> quotient = div(a, b);
    return a - b * complex<T>(quotient.re - rem(quotient.re, (T)1), quotient.im - rem(quotient.im, (T)1));
}
template <class T> GPUMEM_DEVICE complex<T> rem(complex<T> a, T b) { return complex<T>(rem(a.re, b), rem(a.im, b)); }
template <class T> GPUMEM_DEVICE complex<T> rem(T a, complex<T> b) { return rem(complex<T>(a), b); }

template <class T> GPUMEM_DEVICE T clamp(T x, T least, T most) {
    asserted(least <= most);
    return x < least ? least : x > most ? most : x;
}

// ---- places -----------------------------------------------------------------------------------------------------------

// `place op= value` where C++ has another `op`.
#define GPUMEM_ASSIGN(function) \
    template <class T, class U> GPUMEM_DEVICE void function##_to(T& place, U value) { place = function(place, (U)value); }
GPUMEM_ASSIGN(add) GPUMEM_ASSIGN(sub) GPUMEM_ASSIGN(mul) GPUMEM_ASSIGN(div) GPUMEM_ASSIGN(rem) GPUMEM_ASSIGN(shl)
GPUMEM_ASSIGN(shr)
#undef GPUMEM_ASSIGN

// The dynamic shared memory of a launch.
template <class T> struct dynamic {
    T* elements;
    u64 length;
    GPUMEM_DEVICE T& operator()(u64 index) const {
        gpumem::detail::in_bounds(index, length);
        return elements[index];
    }
};
template <class T> GPUMEM_DEVICE u64 extent(const dynamic<T>& all, int axis) { return axis == 0 ? all.length : 1; }

// The element at an array of indices.
#define GPUMEM_ELEMENT(Rank, ...)                                                                            \
    template <class Array> GPUMEM_DEVICE decltype(auto) element(Array&& x, const array<u64, Rank>& at) { \
        return x(__VA_ARGS__);                                                                               \
    }
GPUMEM_ELEMENT(2, at(0), at(1)) GPUMEM_ELEMENT(3, at(0), at(1), at(2)) GPUMEM_ELEMENT(4, at(0), at(1), at(2), at(3))
GPUMEM_ELEMENT(5, at(0), at(1), at(2), at(3), at(4)) GPUMEM_ELEMENT(6, at(0), at(1), at(2), at(3), at(4), at(5))
#undef GPUMEM_ELEMENT

template <class Array, class T> GPUMEM_DEVICE Array filled(T value) {
    Array array;
    for (T& element : array.elements) element = value;
    return array;
}
template <class T, u64... Extents> GPUMEM_DEVICE u64 extent(const array<T, Extents...>&, int axis) {
    const u64 extents[] = {Extents...};
    return axis < (int)sizeof...(Extents) ? extents[axis] : 1;
}
template <class T, int N> GPUMEM_DEVICE u64 extent(const view<T, N>& view, int axis) { return view.extent(axis); }
#if GPUMEM_CONSTANT_BYTES > 0
template <class T, int N> GPUMEM_DEVICE u64 extent(const constant_array<T, N>& array, int axis) {
    return array.extent(axis);
}
#endif
template <class T> GPUMEM_DEVICE u64 len(const slice<T>& slice) { return slice.length; }
template <class T, u64 Length> GPUMEM_DEVICE u64 len(const constant<T, Length>&) { return Length; }
template <class T, u64 Length> GPUMEM_DEVICE u64 len(const array<T, Length>&) { return Length; }

// ---- tuples -----------------------------------------------------------------------------------------------------------

template <class... Types> struct tuple;
template <class A> struct tuple<A> { A f0; };
template <class A, class B> struct tuple<A, B> { A f0; B f1; };
template <class A, class B, class C> struct tuple<A, B, C> { A f0; B f1; C f2; };
template <class A, class B, class C, class D> struct tuple<A, B, C, D> { A f0; B f1; C f2; D f3; };
template <class A, class B, class C, class D, class E> struct tuple<A, B, C, D, E> { A f0; B f1; C f2; D f3; E f4; };
template <class A, class B, class C, class D, class E, class F> struct tuple<A, B, C, D, E, F> {
    A f0; B f1; C f2; D f3; E f4; F f5;
};

}  // namespace rust
}  // namespace gpumem
