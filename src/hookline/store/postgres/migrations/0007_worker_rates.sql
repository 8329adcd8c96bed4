-- How fast a worker delivers, as it says itself with each beat.

ALTER TABLE workers ADD COLUMN delivered_per_s double precision NOT NULL DEFAULT 0;
