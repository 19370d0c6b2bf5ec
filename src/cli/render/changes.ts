/** Changes of objects of a cluster, field by field. */
import type { ChangedObject } from '../../app/channel-apply.ts';
import { counted } from '../../core/counted.ts';

const MAX_FIELDS = 20;
const SIGNS = { create: '+', change: '~', delete: '-' } as const;

export function changeLines({ object, change, fields }: ChangedObject): readonly string[] {
  const shown = fields.slice(0, MAX_FIELDS).map(({ field, before, after }) => {
    const to = after === undefined ? '(removed)' : after;
    return `      ${field}: ${before === undefined ? to : `${before} -> ${to}`}`;
  });
  const more = fields.length - shown.length;
  return [`  ${SIGNS[change]} ${object}`, ...shown, ...(more > 0 ? [`      and ${counted(more, 'more field')}`] : [])];
}
