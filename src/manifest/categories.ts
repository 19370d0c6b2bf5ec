/** What a `categories.json` says of one version of an add-on. */

/**
 * Requirements, offers and recommendations of an add-on: names of add-ons, or categories that several add-ons fulfill, such
 * as `CNI Plugin`.
 */
export interface Categories {
  readonly requires: readonly string[];
  readonly fulfills: readonly string[];
  readonly recommends: readonly string[];
  /** Range of the Kubernetes versions that this version of the add-on is for; empty for all of them. */
  readonly kubernetesVersion: string;
}

/** The values for an add-on without the file. */
export const NO_CATEGORIES: Categories = { requires: [], fulfills: [], recommends: [], kubernetesVersion: '' };
