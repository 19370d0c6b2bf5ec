/** Numbers as people read them. */
export { formatBytes, formatSeconds } from '../../core/units.ts';
