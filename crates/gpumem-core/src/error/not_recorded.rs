//! What a graph cannot record.

use std::fmt;

/// Declares the enum. Each row has the text and the hint, so that none can lack.
macro_rules! not_recorded {
    ($($name:ident: $text:literal, $hint:literal;)*) => {
        /// What a graph cannot record: [`NotRecordable`](super::ErrorKind::NotRecordable).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum NotRecorded {
            $(#[doc = concat!($text, ". Instead: ", $hint, ".")] $name,)*
        }

        impl NotRecorded {
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$name),*];

            fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Returns what can be done instead.
            pub fn hint(self) -> &'static str {
                match self {
                    $(Self::$name => $hint,)*
                }
            }
        }
    };
}

not_recorded! {
    Wait: "a call that waits",
        "call the stream's method that does not wait; return an array to look at it after the launch";
    Look: "a question how far the work is", "ask the stream of the launch";
    DriverStream: "a call that needs the driver's stream", "make it between two launches";
    Event: "an event", "leave it out, arrays order the work by themselves";
    Callback: "a callback", "add it to the stream of the launch";
    Scope: "a scope with memory of the caller", "copy to a page-locked array and return that";
    HostArguments: "an array of the host as an argument of a kernel", "upload it with `to_device` of the stream";
    ConstantArray: "a constant array of a kernel", "make the parameter a slice, and upload the elements";
    OutsideArray: "an array from outside of the recording",
        "give it to `record`, and to each launch, as an argument, or freeze it";
    ResultNotMade: "a result that the body has not made", "return arrays that the body makes";
    PinnedNotReturned: "a page-locked array that the body does not return", "return it";
    MappedOrManaged: "a mapped or a managed array that is made inside",
        "make it outside, and give it to `record`, a managed one by its `device_view`";
    SharedMemory: "memory for other processes", "make it outside, and give it to `record`";
    Spilling: "an array that has left the device",
        "bring it back outside, and give a view of it to `record` and to each launch";
    Communicator: "a communicator that is made inside", "make it outside";
    SeveralRanks: "operations of several ranks in one call",
        "record a graph for each rank, and launch each on a thread of its own";
    ForeignWork: "work of other libraries", "enqueue it on the stream between two launches";
    AnotherRecording: "another recording", "record it before, and launch the graph here";
}

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
