/** JSON as plain data. The same types as in @prefork/wire: this package depends on none of ours. */

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };
