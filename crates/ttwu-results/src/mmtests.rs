//! mmtests' result trees (`work/log`) and its comparison tables, without R, Perl or awk.
