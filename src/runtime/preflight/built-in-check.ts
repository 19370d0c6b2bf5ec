/** A check that is built in: a collector and its analyzer in one. */
import type { JsonObject } from '../../formats/yaml/yaml.ts';
import type { Outcome } from './spec.ts';

export type Row = readonly [verdict: Outcome['verdict'], when: string, message: string];

export interface Check {
  readonly kind: string;
  readonly name?: string;
  readonly settings?: JsonObject;
  readonly excluded?: boolean;
  readonly checkName?: string;
  readonly outcomes: readonly Row[];
}
