//! Kernels that a `macro_rules` writes with names of its caller beside names of its own, of the same letters. Each stands beside
//! the same code as plain Rust.

use gpumem::kernel::prelude::*;

/// A kernel that gives `$body` for each work-item, and a function of Rust that does.
macro_rules! both {
    ($kernel:ident $plain:ident $i:ident $body:block) => {
        #[gpumem::kernel(unsafe)]
        pub(crate) fn $kernel(out: SliceMut<i64>) {
            let at = global_id(0);
            let $i = at as i64;
            out[at] = $body;
        }

        #[allow(unused)]
        pub(crate) fn $plain($i: i64) -> i64 $body
    };
}

macro_rules! variables {
    ($t:ident) => {
        both! { variables plain_variables i {
            let $t = i + 1;
            let t = 100;
            let mut sum = $t + t * 3;
            {
                let $t = 7;
                sum += $t * t;
                let t = 11;
                sum = sum * 5 + $t - t;
            }
            for t in 0..3i64 {
                sum = sum * 3 + $t * t;
                for $t in 0..2i64 {
                    sum = sum * 3 + $t - t;
                }
            }
            sum += match i % 4 {
                0 => t,
                1 => $t,
                $t if $t + t > 102 => $t * 2 - t,
                t => t - $t,
            };
            let (mut $t, mut t) = (t, $t);
            $t += 1;
            t *= 2;
            sum * 7 + $t - t
        }}
    };
}
variables!(t);

macro_rules! labels {
    ($a:tt $n:ident) => {
        both! { labels plain_labels i {
            let mut $n = 0;
            let mut n = 1i64;
            $a: for k in 0..4i64 {
                'a: for _ in 0..3 {
                    n += 1;
                    $n += n * (i + 1);
                    if n % 5 == k {
                        break $a;
                    }
                    if n % 3 == 0 {
                        continue $a;
                    }
                    if n % 7 == 2 {
                        break 'a;
                    }
                    while n % 11 == 4 {
                        n += 1;
                        if n > 20 {
                            break 'a;
                        }
                    }
                }
                $n *= 3;
            }
            $n + n
        }}
    };
}
labels!('a n);

macro_rules! lifetimes {
    ($a:lifetime $b:lifetime) => {
        both! { lifetimes plain_lifetimes i {
            let mut n = 1;
            $a: for k in 0..4i64 {
                'a: loop {
                    n += 1;
                    $b: while n < 100 {
                        'b: for _ in 0..3 {
                            n += i + 1;
                            if n % 5 == k {
                                continue $a;
                            }
                            if n % 7 == 2 {
                                break 'b;
                            }
                            if n % 7 == 3 {
                                continue $b;
                            }
                            if n % 7 == 4 {
                                break 'a;
                            }
                        }
                        n *= 2;
                    }
                    if n > 90 {
                        break $a;
                    }
                }
                n *= 3;
            }
            n
        }}
    };
}
lifetimes!('a 'b);

macro_rules! function {
    ($value:ident, $made:expr) => {
        #[gpumem::device]
        pub(crate) fn of_both(value: i64, $value: i64) -> i64 {
            let made = value * 2;
            $value * 10 + made + if value > $value { $value } else { value }
        }

        both! { functions_of_both plain_functions i { of_both(i, 30) } }
    };
}
function!(value, 0);

/// Barriers, where the body is not split.
macro_rules! apart {
    ($c:ident) => {
        #[gpumem::kernel(unsafe)]
        pub(crate) fn apart(out: SliceMut<i64>) {
            let tile = shared::<i64>([32]);
            let $c = local_id(0);
            let c = 3usize;
            tile[$c] = ($c * c) as i64;
            if c == 3 {
                barrier(Local);
            }
            out[global_id(0)] = tile[31 - $c] + c as i64;
        }
    };
}
apart!(c);

/// A function has names of its own.
#[gpumem::kernel(unsafe)]
pub(crate) fn hidden_by_functions(out: SliceMut<i64>) {
    let a = global_id(0) as i64 % 32;
    let b = group_size(1) as i64;
    let sum = wave_reduce(a, |a, c| a + c * b);
    out[global_id(0)] = sum;
}

/// Kernels with the names of functions and types that the compilers have.
macro_rules! of_compilers {
    ($($name:ident)*) => {$(
        #[gpumem::kernel(unsafe)]
        fn $name(out: SliceMut<i64>) {
            out[global_id(0)] = 1;
        }
    )*

        fn of_compilers() -> Vec<gpumem::kernel::KernelDef<super::Integers>> {
            vec![$($name()),*]
        }
    };
}
of_compilers! { sqrt min pow abs floor y0 free memcpy printf clock index isnan dim3 float4 size_t main }

/// Each kernel, and what it gives for a work-item.
#[allow(dead_code)] // not every test program runs all of them
#[allow(clippy::type_complexity)]
pub(crate) fn pairs() -> Vec<(gpumem::kernel::KernelDef<super::Integers>, fn(i64) -> i64)> {
    let mut pairs: Vec<(_, fn(i64) -> i64)> = vec![
        (variables(), plain_variables),
        (labels(), plain_labels),
        (lifetimes(), plain_lifetimes),
        (functions_of_both(), plain_functions),
        (apart(), |i| (31 - i % 32) * 3 + 3),
        (hidden_by_functions(), |_| 496),
    ];
    pairs.extend(of_compilers().into_iter().map(|kernel| (kernel, (|_| 1) as fn(i64) -> i64)));
    pairs
}
