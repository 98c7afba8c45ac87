/** Master keys of tests: fixed, and no pattern that production refuses. */
import { hash } from "node:crypto"

/** The master key of a number; equal numbers give equal keys. */
export const masterKeyOf = (number: number): string => hash("sha256", `key ${number}`, "base64")
