/** Objects of other programs that a controller takes, as far as they are alike. Pure. */
import { fits } from '../../core/schema.ts';
import * as v from 'valibot';
import { objectVersion, type Live, type Version } from './observe.ts';
import { conditions, type Condition } from './hub-kinds.ts';

export interface ForeignObject {
  readonly at: Version;
  /** Kind, namespace and name, as an annotation has them. */
  readonly from: string;
  readonly generation: number;
  readonly isDeleting: boolean;
  readonly finalizers: readonly string[];
  readonly conditions: readonly Condition[];
  /** The stored status. */
  readonly status: unknown;
}

const statusSchema = v.looseObject({ conditions });

/** The conditions of a status. */
export function conditionsIn(status: unknown): readonly Condition[] {
  return fits(statusSchema, status) ? (status.conditions ?? []) : [];
}

export function readForeign(kind: string, object: Live): ForeignObject {
  const { metadata, status } = object;
  const { namespace, name, generation = 1, deletionTimestamp, finalizers } = metadata;
  return {
    at: objectVersion(object),
    from: `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`,
    generation,
    isDeleting: typeof deletionTimestamp === 'string',
    finalizers,
    conditions: conditionsIn(status),
    status,
  };
}
