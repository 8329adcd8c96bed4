-- The long columns of the hot statements come as these, so that codecs of our own may write them.
-- serves: 0008

CREATE DOMAIN id_list     AS uuid[];
CREATE DOMAIN number_list AS float8[];
CREATE DOMAIN text_list   AS text[];
CREATE DOMAIN bytes_list  AS bytea[];
