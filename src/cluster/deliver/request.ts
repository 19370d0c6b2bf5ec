/** How add-ons are delivered. */
import type { HelmRequest } from './helm.ts';

export interface DeliveryRequest extends HelmRequest {
  /** Add-ons of another owner become those of their channel: all, or those of these names. */
  readonly takeOver?: boolean | readonly string[] | undefined;
  /** Takes fields from other managers. */
  readonly forceConflicts?: boolean | undefined;
  readonly pruneNamespaces?: boolean | undefined;
  readonly pruneCrds?: boolean | undefined;
  /** Limit of the wait for the health of an add-on, in milliseconds; default: 5 minutes. */
  readonly timeout?: number | undefined;
}

export interface Reporting {
  /** Gets a line of progress. */
  readonly report: (text: string) => void;
}

const TIMEOUT_MS = 300_000;

/** Limit of the wait for the health of an add-on, in milliseconds. */
export function timeoutOf({ timeout }: { readonly timeout?: number | undefined }): number {
  return timeout ?? TIMEOUT_MS;
}
