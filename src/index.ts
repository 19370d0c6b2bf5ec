/** The public library API, and nothing else. */
export { CurlewError, ERROR_CODES, type ErrorCode } from './core/errors.ts';
export type { Diagnostic, Place } from './core/diagnostic.ts';
export type { ProgressEvent, Report } from './core/events.ts';
export { packageDigest, parseAddonJson, type AddonJson, type PackageFile } from './core/package.ts';
