//! Functions by which a program changes single fields of a struct of options, which may grow.

/// Makes for each field a function of the same name, which returns the struct with this field
/// set; a field that is an `Option` gets `Some`:
///
/// ```
/// #[derive(Default)]
/// pub struct Options {
///     pub sizes: Option<usize>,
/// }
///
/// tsumugi_core::setters! { Options:
///     sizes: usize, "the number of sizes";
/// }
/// assert_eq!(Options::default().sizes(3).sizes, Some(3));
/// ```
#[macro_export]
macro_rules! setters {
    ($options:ident: $($field:ident: $type:ty, $what:literal;)*) => {
        impl $options {
            $(
                #[doc = concat!("Sets ", $what, ".")]
                #[must_use]
                pub fn $field(self, $field: $type) -> Self {
                    Self { $field: $field.into(), ..self }
                }
            )*
        }
    };
}
