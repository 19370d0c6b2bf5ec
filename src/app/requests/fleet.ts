/** Requests about fleets. */
import { paths } from '../../core/field.ts';
import { request, type RequestOf } from '../../core/request.ts';

const FILES = {
  files: paths('FILES', 'files and folders with the clusters and add-ons of a fleet', {
    operand: true,
    required: 'specify the files or the folder of a fleet',
  }),
};
export type FleetRequest = RequestOf<typeof FILES>;

export const FLEET_CHECK = request('fleet check', 'Check the files of a fleet', FILES);
