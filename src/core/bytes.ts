/** Bytes that are made while they are read. */
export type Bytes = AsyncGenerator<Uint8Array, void, undefined>;
