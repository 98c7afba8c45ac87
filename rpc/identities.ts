/** How a player signs in (spec sections 2.1 and 3): an address and a password, or a provider. */
import { Schema } from "effect"

/** Who signs players in for us. */
export const Provider = Schema.Literals(["google", "discord", "apple", "x"])
export type Provider = typeof Provider.Type

/** A way to sign in; `email` is an address with a password. */
export const Method = Schema.Literals(["email", ...Provider.literals])
export type Method = typeof Method.Type
